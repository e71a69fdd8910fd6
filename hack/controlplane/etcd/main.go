// Command etcd is the etcd server as a binary of this module, so that one go.sum pins the whole control plane.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

func main() {
	// Each etcd allocates two segments of its log when it starts: 128 MB with the default, and tests start a dozen.
	wal.SegmentSizeBytes = 4 << 20
	etcdmain.Main(os.Args)
}
