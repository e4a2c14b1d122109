package apiservice_test

import (
	"testing"

	"linkstream/api/apiservice"
	"linkstream/schema/testkit"
)

func TestFraming(t *testing.T) {
	links, clicks := openStores(t)
	t.Cleanup(func() { testkit.Close(t, clicks) })
	s, err := apiservice.New(config(), links, clicks, nil, discard)
	testkit.Must(t, err)
	stop := run(s)
	t.Cleanup(func() { testkit.Must(t, stop()) })
	for _, path := range []string{"/api/v1/openapi.json", "/dashboard/sign-in"} {
		t.Run(path, func(t *testing.T) { testkit.TestFraming(t, s.Addr(), path, 200) })
	}
}
