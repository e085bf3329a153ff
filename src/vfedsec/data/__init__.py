"""From a party's raw table to encoded rows, aligned with those of the other parties."""
