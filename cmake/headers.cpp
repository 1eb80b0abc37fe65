// Empty: the target of this file owns a precompiled header, which other targets reuse.
