// Command etcd is the etcd server as a binary of this module, so that one go.sum pins the whole control plane.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
