package testengines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// Brokers are three nodes of Kafka, each of which is broker and controller.
type Brokers struct {
	Nodes []*Engine
	dirs  []string
}

// StartBrokers starts a Kafka of three nodes, each in its own folder in dir.
func StartBrokers(ctx context.Context, dir string, log *slog.Logger) (*Brokers, error) {
	const count = 3
	programs, err := kafkaOfMachine(ctx, log)
	if err != nil {
		return nil, err
	}
	ports, err := claimPorts(3 * count)
	if err != nil {
		return nil, err
	}
	b := &Brokers{Nodes: make([]*Engine, count), dirs: make([]string, count)}
	controllers := make([]string, count)
	for i := range count {
		controllers[i] = hostPort(ports[count+i])
	}
	var group errgroup.Group // two nodes have to run before one of them answers
	for i := range count {
		group.Go(func() error {
			folder, release, err := lockFolder(filepath.Join(dir, fmt.Sprintf("broker-%d", i+1)))
			if err != nil {
				return err
			}
			node := kafkaNode{number: i + 1, addr: hostPort(ports[i]), controllers: controllers}
			if node.secure, err = newSecure(folder, ports[2*count+i]); err != nil {
				return errors.Join(err, release())
			}
			p := programs.server(folder, node)
			p.log, p.ping = log, func(ctx context.Context) error { return pingBrokers(ctx, node.addr, count) }
			e := &Engine{Name: "kafka", Addr: node.addr, Version: programs.version, Source: programs.libs}
			b.Nodes[i], err = e.started(ctx, p, release, log)
			b.dirs[i] = folder
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(fmt.Errorf("start brokers: %w", err), b.Close())
	}
	return b, nil
}

// Lose ends a node at once, and takes its disk away: started again, it is another machine with the same number.
func (b *Brokers) Lose(node int) error {
	return errors.Join(b.Nodes[node].Kill(), os.RemoveAll(filepath.Join(b.dirs[node], kafkaData)))
}

// Close stops the nodes. They are not stopped in order: the last two cannot hand over what they lead.
func (b *Brokers) Close() error {
	var errs []error
	for _, e := range b.Nodes {
		if e != nil {
			errs = append(errs, e.Kill(), e.Close())
		}
	}
	return errors.Join(errs...)
}
