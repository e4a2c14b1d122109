package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"linkstream/schema/stream"
)

// The subjects of redirect. The first is what the others are compared with.
const (
	bareServer   = "bare fasthttp"
	bareNginx    = "nginx"
	edgeSpooling = "edge, spooling" // no broker answers: the redirect itself, with the click in the spool
	edgeShipping = "edge, shipping" // to a broker in a process of its own
	standalone   = "standalone"     // edge, broker, ingest and stores in one process: all that is done for a click
	running      = "running service"
)

// runRedirect measures the edge's answers.
func runRedirect(ctx context.Context, b *bench) error {
	crowd := newCrowd(newLinkSet(b.cfg.Links), b.cfg.Links)
	service, err := b.open(ctx, crowd.links)
	if err != nil {
		return err
	}
	whole := b.visitedService(service, crowd)
	var subjects []*subject
	var spooling, shipping *subject
	var edges []*counter
	if b.cfg.Start {
		if subjects, err = b.bareServers(ctx, crowd); err != nil {
			return err
		}
		if spooling, shipping, edges, err = b.edges(ctx, service.engines, crowd); err != nil {
			return err
		}
		subjects = append(subjects, spooling, shipping)
	}
	subjects = append(subjects, whole)
	if err := b.rounds(ctx, "redirect", subjects); err != nil {
		return err
	}
	paced := []*subject{whole}
	if b.cfg.Start { // how late a bare server is tells what the machine has to do with it
		paced = []*subject{subjects[0], shipping, whole}
	}
	if err := b.openLoop(ctx, "redirect", paced); err != nil {
		return err
	}
	for _, c := range edges {
		if err := b.checkCounter(ctx, c); err != nil {
			return err
		}
	}
	return b.verify(ctx, service, crowd)
}

// bareServers starts servers that answer with a redirect and do nothing else.
func (b *bench) bareServers(ctx context.Context, crowd *crowd) ([]*subject, error) {
	child, addr, err := b.role(ctx, bareServer, "serve-bare")
	if err != nil {
		return nil, err
	}
	subjects := []*subject{b.newSubject(bareServer, addr, crowd.bareVisits(addr), process{bareServer, child.Usage})}
	path, err := exec.LookPath("nginx")
	if err != nil {
		b.say("nginx is not installed: going on without it")
		return subjects, nil
	}
	nginx, err := b.nginx(ctx, path, crowd)
	return append(subjects, nginx), err
}

// nginxConfig is for one process, whose CPU time is all there is. The pid file and the logs of its start are kept out of
// the system's folders.
const nginxConfig = `
daemon off; master_process off; pid %[1]s/nginx.pid; error_log %[1]s/nginx.log;
events { worker_connections 8192; }
http {
	access_log off; keepalive_requests 1000000000; server_tokens off;
	client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
	server { listen %[2]s; add_header Cache-Control "private, no-store" always; location / { return 302 %[3]s; } }
}
`

func (b *bench) nginx(ctx context.Context, program string, crowd *crowd) (*subject, error) {
	addrs, err := freeAddrs(1)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(b.dir, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, nginxConfig, b.dir, addrs[0], someURL), 0o600); err != nil {
		return nil, err
	}
	child, err := b.spawn(bareNginx, nil, program, "-c", config, "-e", filepath.Join(b.dir, "nginx.log"))
	if err != nil {
		return nil, err
	}
	err = child.Await(ctx, func(ctx context.Context) error { return listening(ctx, addrs[0]) })
	return b.newSubject(bareNginx, addrs[0], crowd.bareVisits(addrs[0]), process{bareNginx, child.Usage}), err
}

// edges starts edges alone, on the links of the service: what the redirect costs without what comes after it.
func (b *bench) edges(
	ctx context.Context, on engines, crowd *crowd,
) (spooling, shipping *subject, counters []*counter, err error) {
	brokerAddr, broker, err := brokerAlone(ctx, on)
	if err != nil {
		return nil, nil, nil, err
	}
	const nowhere = "127.0.0.1:1" // nothing listens there
	spooling, recorded, err := b.edge(ctx, on, edgeSpooling, nowhere, "linkstream_edge_clicks_recorded_total", crowd)
	if err != nil {
		return nil, nil, nil, err
	}
	shipping, shipped, err := b.edge(ctx, on, edgeShipping, brokerAddr, "linkstream_edge_clicks_shipped_total", crowd)
	if err != nil {
		return nil, nil, nil, err
	}
	shipping.processes = append(shipping.processes, broker...)
	return spooling, shipping, []*counter{recorded, shipped}, nil
}

// brokerAlone returns a broker that has topics behind which nobody counts.
func brokerAlone(ctx context.Context, on engines) (addr string, processes []process, err error) {
	if addr, processes, err = on.broker(ctx); err != nil {
		return "", nil, err
	}
	return addr, processes, createTopics(ctx, aloneTopics(addr))
}

// edge starts one edge, which is done with a load when the metric has counted its clicks.
func (b *bench) edge(
	ctx context.Context, on engines, name, broker, metric string, crowd *crowd, flags ...string,
) (*subject, *counter, error) {
	addrs, err := freeAddrs(1)
	if err != nil {
		return nil, nil, err
	}
	program, args, err := on.edge(ctx)
	if err != nil {
		return nil, nil, err
	}
	addr, topics := addrs[0], aloneTopics(broker)
	args = append(append(args, flags...), "-spool.dir", filepath.Join(b.dir, name),
		"-spool.max-bytes", fmt.Sprint(16<<30), "-edge.listen", addr, "-edge.url", "http://"+addr, "-kafka.brokers", broker,
		"-kafka.clicks-topic", topics.Clicks, "-kafka.dead-topic", topics.Dead, "-kafka.changes-topic", topics.Changes,
		"-log.level", "error")
	child, err := b.spawn(name, nil, program, args...)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// An edge without a broker is never ready, but it answers.
	if err := child.Await(ctx, func(ctx context.Context) error { return answers(ctx, "http://"+addr+"/robots.txt") }); err != nil {
		return nil, nil, err
	}
	c := &counter{name: name, base: "http://" + addr, metric: metric}
	s := b.newSubject(name, addr, crowd.visitsUncounted(addr), process{"edge", child.Usage})
	s.settle = c.settle
	return s, c, nil
}

// aloneTopics are topics behind which nobody counts.
func aloneTopics(broker string) stream.Config {
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.Clicks, cfg.Dead, cfg.Changes = broker, "alone.clicks", "alone.dead", "alone.changes"
	return cfg
}
