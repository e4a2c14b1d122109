package contender

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"

	"linkstream/bench/proc"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

// nginxName is the name of nginx in reports.
const nginxName = "nginx"

// nginxConfig is for a single process, so that its CPU time is all that nginx uses. The pid file, the logs and the
// temporary files stay out of the system's directories.
const nginxConfig = `
daemon off; master_process off; pid %[1]s/nginx.pid; error_log %[1]s/nginx.log;
events { worker_connections 8192; }
http {
	access_log off; keepalive_requests 1000000000; server_tokens off;
	client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
	server { listen %[2]s; add_header Cache-Control "private, no-store" always; location / { return 302 %[3]s; } }
}
`

// Nginx starts an nginx that redirects every request. It returns nil if nginx is not installed.
func (s *Starter) Nginx(ctx context.Context) (*Contender, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		s.Progress("nginx is not installed: continuing without it")
		return nil, nil
	}
	addrs, err := system.FreeAddrs(1)
	if err != nil {
		return nil, err
	}
	addr, config := addrs[0], s.Group.Path("nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, nginxConfig, s.Group.Path(), addr, workload.BareURL), 0o600); err != nil {
		return nil, err
	}
	child, err := s.Group.Start(nginxName, nil, program, "-c", config, "-e", s.Group.Path("nginx.log"))
	if err != nil {
		return nil, err
	}
	err = child.Await(ctx, func(ctx context.Context) error { return accepts(ctx, addr) })
	return Server(nginxName, addr, s.Conns, s.Visits.Bare(addr), proc.Process{Name: nginxName, Usage: child.Usage}), err
}

// accepts returns nil if a server accepts connections at addr.
func accepts(ctx context.Context, addr string) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return c.Close()
}
