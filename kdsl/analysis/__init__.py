"""Facts about kernels that passes and emitters share. Nothing here changes a kernel."""
