//! What selects objects: by patterns of their identities, and by their labels and annotations.
