"""Data sets that papers use: Bank Marketing, Adult, EMNIST and Fashion-MNIST, in memory as they were published.

The package holds none of them: `load` looks for their files and, where there are none, asks OpenML.
"""

from vfedsec.data.datasets.catalogue import KNOWN as KNOWN
from vfedsec.data.datasets.dataset import Dataset as Dataset
from vfedsec.data.datasets.dataset import ImageDataset as ImageDataset
from vfedsec.data.datasets.dataset import TableDataset as TableDataset
from vfedsec.data.datasets.loading import load as load
