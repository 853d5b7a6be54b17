//! (route)
