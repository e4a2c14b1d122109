package service

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/schema"
)

const (
	healthTimeout   = 3 * time.Second // longer than readyTimeout
	maxHealthAnswer = 64 << 10
)

// HealthUsage explains the command of Health.
const HealthUsage = `With "health" it only asks the program that runs with the same -ops.listen whether it is
alive, with "health ready" whether it can do its work. The exit code is 0 if so, else 1.
`

// AsksHealth reports whether a program's command is Health's.
func AsksHealth(command []string) bool { return len(command) > 0 && command[0] == "health" }

// Health asks the program that listens on c.Listen for /healthz or, if command is "health ready", for /readyz. It
// returns an error unless the answer is 200.
func (c *OpsConfig) Health(ctx context.Context, command []string) error {
	path := "/healthz"
	switch what := strings.Join(command, " "); what {
	case "health":
	case "health ready":
		path = "/readyz"
	default:
		return schema.Errorf(schema.CodeInvalid, "unknown command %q: it is health or health ready", what)
	}
	client := fasthttp.HostClient{Addr: c.Listen, MaxResponseBodySize: maxHealthAnswer,
		// without a host, or with the address of all interfaces, it dials this machine
		Dial: func(addr string) (net.Conn, error) {
			return (&net.Dialer{Timeout: healthTimeout}).DialContext(ctx, "tcp", addr)
		}}
	defer client.CloseIdleConnections()
	request, answer := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	request.SetRequestURI("http://" + c.Listen + path)
	request.SetHost("localhost")
	request.SetConnectionClose()
	if err := client.DoTimeout(request, answer, healthTimeout); err != nil {
		return fmt.Errorf("ask %s%s: %w", c.Listen, path, err)
	}
	if answer.StatusCode() != fasthttp.StatusOK {
		return fmt.Errorf("%s%s answers %d: %s", c.Listen, path, answer.StatusCode(),
			strings.TrimSpace(string(answer.Body())))
	}
	return nil
}
