package service_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"linkstream/schema/service"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case raiseRole:
		allowConnections(2000, 0, 1000)
		return
	case deniedRole:
		allowConnections(2*fewFiles, 65534, service.DefaultConnections, service.DefaultConnections)
		return
	case askedRole:
		allowConnections(2*fewFiles, 65534, 1000, service.DefaultConnections)
		return
	case socketsRole:
		inheritSockets()
		return
	case versionRole:
		service.Main("test", failWithArgs)
		return
	case stopRole:
		service.Main("test", runUntilStopped)
		return
	}
	goleak.VerifyTestMain(m,
		// fasthttp's clock, and its cleaner of idle workers, which checks only every ten seconds whether its server has
		// stopped.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}
