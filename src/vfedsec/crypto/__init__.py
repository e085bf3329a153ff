"""Keys, masks and seals. Primitives come from `cryptography`; here is only how they are put together."""
