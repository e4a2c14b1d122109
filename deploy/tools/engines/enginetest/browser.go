package enginetest

import (
	"log/slog"
	"os"
	"testing"

	"linkstream/deploy/tools/engines/testengines"
)

// Chromium returns a browser that the test can start.
func Chromium(tb testing.TB) *testengines.Chromium {
	tb.Helper()
	skipIfShort(tb)
	browser, err := testengines.FindChromium(tb.Context(), slog.New(slog.NewTextHandler(tb.Output(), nil)))
	if err != nil {
		Unavailable(tb, err)
	}
	return browser
}

// AxeCore returns the script of axe-core, which adds the object axe to a page.
func AxeCore(tb testing.TB) string {
	tb.Helper()
	skipIfShort(tb)
	path, err := testengines.AxeCore(tb.Context(), slog.New(slog.NewTextHandler(tb.Output(), nil)))
	if err != nil {
		Unavailable(tb, err)
	}
	script, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(script)
}
