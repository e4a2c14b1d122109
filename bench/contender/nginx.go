package contender

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"linkstream/bench/proc"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

// nginxConfig is for a single process, so that it is killed with this one. Several share a port. The pid file, the logs
// and the temporary files stay out of the system's directories.
const nginxConfig = `
daemon off; master_process off; pid %[1]s/nginx.pid; error_log %[1]s/nginx.log;
events { worker_connections 8192; }
http {
	access_log off; keepalive_requests 1000000000; server_tokens off;
	client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
	server { listen %[2]s; add_header Cache-Control "private, no-store" always; location / { return 302 %[3]s; } }
}
`

// Nginx starts an nginx that redirects every request, with the given number of worker processes. It returns nil if nginx
// is not installed.
func (s *Starter) Nginx(ctx context.Context, workers int) (*Contender, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		s.Progress("nginx is not installed: continuing without it")
		return nil, nil
	}
	addrs, err := system.FreeAddrs(1)
	if err != nil {
		return nil, err
	}
	name, listen := "nginx", addrs[0]
	if workers > 1 {
		name, listen = fmt.Sprintf("nginx, %d workers", workers), addrs[0]+" reuseport"
	}
	processes := make([]proc.Process, workers)
	for i := range processes {
		dir := s.Group.Path(fmt.Sprintf("nginx-%d-%d", workers, i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		config := dir + "/nginx.conf"
		if err := os.WriteFile(config, fmt.Appendf(nil, nginxConfig, dir, listen, workload.BareURL), 0o600); err != nil {
			return nil, err
		}
		worker := name
		if workers > 1 {
			worker = fmt.Sprintf("nginx, worker %d of %d", i+1, workers)
		}
		child, err := s.Group.Start(worker, nil, program, "-c", config, "-e", dir+"/nginx.log")
		if err != nil {
			return nil, err
		}
		err = child.Await(ctx, func(context.Context) error {
			_, err := os.Stat(dir + "/nginx.pid") // written when it listens
			return err
		})
		if err != nil {
			return nil, err
		}
		processes[i] = proc.Process{Name: worker, Usage: child.Usage}
	}
	return s.Load.Server(name, addrs[0], s.Visits.Bare(addrs[0]), proc.Sum(name, processes...)), nil
}
