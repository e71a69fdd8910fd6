//! The Jinja2 dialect of kluctl projects
