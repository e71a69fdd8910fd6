// The `flux` command line, which tests use as a client of our controllers. Its packages come from its own module, with its own go.sum.
module weir/hack/flux

go 1.26.0

require github.com/fluxcd/flux2/v2 v2.9.5 // indirect
