//! The Program: types, the operation table, builder, verifier and text form.
