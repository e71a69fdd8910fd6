//! kustomize build
