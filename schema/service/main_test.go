package service_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(scarceRole) != "" {
		scarceServer()
		return
	}
	goleak.VerifyTestMain(m,
		// fasthttp's clock, and its cleaner of idle workers, which looks only every ten seconds whether its server stopped.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}
