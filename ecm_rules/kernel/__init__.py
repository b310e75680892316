"""The kernel: meter and files. Its modules belong to the runtime ring: the light part of the standard library alone."""
