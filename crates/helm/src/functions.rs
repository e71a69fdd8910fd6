//! What sprig and Helm add to the functions of templates.
