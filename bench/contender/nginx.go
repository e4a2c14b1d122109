package contender

import (
	"context"
	"crypto/rand"
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
	client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s;
	uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
	%[4]s
	server { listen %[2]s; add_header Cache-Control "private, no-store" always; location / { return 302 %[3]s; } }
}
`

// nginxTLS has one key of session tickets for all workers, like a single nginx.
const nginxTLS = `ssl_certificate %[1]s; ssl_certificate_key %[2]s; ssl_protocols TLSv1.3; ssl_ecdh_curve X25519;
	ssl_session_ticket_key %[3]s;`

// Nginx starts an nginx that redirects every request, with the given number of worker processes. With a certificate it
// serves HTTPS. It returns nil if nginx is not installed.
func (s *Starter) Nginx(ctx context.Context, workers int, cert *system.Certificate) (*Contender, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		s.Progress("nginx is not installed: continuing without it")
		return nil, nil
	}
	addrs, err := system.FreeAddrs(1)
	if err != nil {
		return nil, err
	}
	name, listen := fmt.Sprintf("nginx, %d workers", workers), addrs[0]+" reuseport"
	kind, secure := "nginx", ""
	if cert != nil {
		tickets := s.Group.Path("nginx.tickets")
		key := []byte(rand.Text() + rand.Text() + rand.Text() + rand.Text())[:80]
		if err := os.WriteFile(tickets, key, 0o600); err != nil {
			return nil, err
		}
		kind, secure, listen = "nginx-tls", fmt.Sprintf(nginxTLS, cert.Cert, cert.Key, tickets), listen+" ssl"
	}
	processes := make([]proc.Process, workers)
	for i := range processes {
		dir := s.Group.Path(fmt.Sprintf("%s-%d-%d", kind, workers, i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		path := dir + "/nginx.conf"
		config := fmt.Appendf(nil, nginxConfig, dir, listen, workload.BareURL, secure)
		if err := os.WriteFile(path, config, 0o600); err != nil {
			return nil, err
		}
		worker := fmt.Sprintf("nginx, worker %d of %d", i+1, workers)
		child, err := s.Group.Start(kind+" "+worker, nil, program, "-c", path, "-e", dir+"/nginx.log")
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
	return s.redirects(name, addrs[0], bare(addrs[0]), proc.Sum(name, processes...)), nil
}
