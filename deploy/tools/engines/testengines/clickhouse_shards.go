package testengines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
)

// ShardsCluster is the name of the cluster of StartShards.
const ShardsCluster = "shards"

// StartShards starts two ClickHouse engines with chserver, each in its own folder in dir, and configures both as the
// shards of a cluster. They have no replicas and no Keeper, so ON CLUSTER does not work.
func StartShards(ctx context.Context, dir string, log *slog.Logger) (shards []*Engine, err error) {
	const count = 2
	defer func() {
		if err != nil {
			for _, e := range shards {
				err = errors.Join(err, e.Close())
			}
			err = fmt.Errorf("start shards: %w", err)
		}
	}()
	library, err := installChdb(ctx, log)
	if err != nil {
		return nil, err
	}
	ports, err := claimPorts(2 * count)
	if err != nil {
		return nil, err
	}
	addrs := make([]string, count)
	for i := range addrs {
		addrs[i] = hostPort(ports[i])
	}
	for i := range count {
		folder, release, err := lockFolder(filepath.Join(dir, fmt.Sprintf("shard-%d", i+1)))
		if err != nil {
			return shards, err
		}
		e, err := startClickHouseAt(ctx, folder, []int{ports[i], ports[count+i]}, release, log, "chserver with "+library,
			chserver(library, "", addrs...))
		if err != nil {
			return shards, err
		}
		shards = append(shards, e)
	}
	return shards, nil
}
