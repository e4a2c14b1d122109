package enginetest

import (
	"log/slog"
	"os"
	"testing"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

// Chromium returns a browser that the test can start.
func Chromium(tb testing.TB) *testengines.Chromium {
	tb.Helper()
	browser, err := testengines.FindChromium(tb.Context(), slog.New(slog.NewTextHandler(tb.Output(), nil)))
	testkit.Must(tb, err)
	return browser
}

// AxeCore returns the script of axe-core, which adds the object axe to a page.
func AxeCore(tb testing.TB) string {
	tb.Helper()
	path, err := testengines.AxeCore(tb.Context(), slog.New(slog.NewTextHandler(tb.Output(), nil)))
	testkit.Must(tb, err)
	script, err := os.ReadFile(path)
	testkit.Must(tb, err)
	return string(script)
}
