"""Other people's formats: `omar` (published `.npy` files), `vault` (Flashbax), `npz`."""
