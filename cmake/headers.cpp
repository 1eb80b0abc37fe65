// Nothing: the target of this file owns a precompiled header, which others reuse.
