// Carries the precompiled LibTorch header; has no code of its own.
