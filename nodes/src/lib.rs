//! The processes of phitwire.
