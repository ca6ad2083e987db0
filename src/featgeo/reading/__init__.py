"""Tables as they come: files and folders of any size, frames, streams, Dask; in parts read apart and merged."""
