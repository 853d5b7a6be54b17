//! Tori in virtual time.
