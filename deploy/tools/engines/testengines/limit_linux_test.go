package testengines_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

func TestEngineThatEndsItself(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end    func(e *testengines.Engine, dir string) error
		logged bool
	}{
		"is logged as an error": {func(_ *testengines.Engine, dir string) error {
			return os.WriteFile(filepath.Join(dir, "end"), nil, 0o600)
		}, true},
		"is not logged as an error if its disk is full":    {func(e *testengines.Engine, _ string) error { return e.LimitFiles(1) }, false},
		"is not logged as an error if a test has ended it": {func(e *testengines.Engine, _ string) error { return e.Kill() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, log := t.TempDir(), new(testkit.Buffer)
			e, err := testengines.StartScript(t.Context(), dir, "trap '' XFSZ; until [ -e end ] || ! echo beat > heart; do sleep 0.01; done; exit 1",
				log.Logger())
			testkit.Must(t, err)
			testkit.Must(t, test.end(e, dir))
			testkit.Succeeds(t, func() error {
				if _, running := e.PID(); running {
					return errors.New("the script runs")
				}
				return nil
			})
			testkit.Equal(t, "logged as an error", log.Contains("level=ERROR"), test.logged)
			testkit.Close(t, e)
		})
	}
}
