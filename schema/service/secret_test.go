package service_test

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

// vault is a Section with a secret.
type vault struct{ Key string }

func (v *vault) RegisterFlags(fs *flag.FlagSet) {
	schema.SecretVar(fs, &v.Key, "vault.key", "`key` of the vault")
}

func (v *vault) Validate() error {
	if v.Key == "invalid" {
		return errors.New("-vault.key: does not fit")
	}
	return nil
}

func parseVault(args ...string) (string, error) {
	v := &vault{Key: "default"}
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	_, err := service.Parse(fs, args, v, new(service.LogConfig))
	return v.Key, err
}

func writeFile(t *testing.T, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "secret")
	testkit.Must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestSecretFilePrecedence(t *testing.T) {
	one, two := writeFile(t, "one\n"), writeFile(t, "two\r\n")
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"the file of a flag overrides the default":     {nil, []string{"-vault.key-file", one}, "one"},
		"the file of a variable overrides the default": {map[string]string{"FILE": two}, nil, "two"},
		"a flag overrides the file of a variable":      {map[string]string{"FILE": one}, []string{"-vault.key=flag"}, "flag"},
		"the file of a flag overrides a variable": {map[string]string{"": "variable"},
			[]string{"-vault.key-file", one}, "one"},
		"the file of a flag overrides that of a variable": {
			map[string]string{"FILE": one}, []string{"-vault.key-file=" + two}, "two"},
		"a flag without a file overrides both variables": {
			map[string]string{"": "variable", "FILE": one}, []string{"-vault.key=flag"}, "flag"},
		"an empty name is no file": {map[string]string{"": "variable", "FILE": ""}, nil, "variable"},
	} {
		t.Run(name, func(t *testing.T) {
			for suffix, value := range c.env {
				t.Setenv(strings.TrimSuffix("LINKSTREAM_VAULT_KEY_"+suffix, "_"), value)
			}
			got, err := parseVault(c.args...)
			testkit.Must(t, err)
			testkit.Equal(t, "secret", got, c.want)
		})
	}
}

func TestSecretFileErrors(t *testing.T) {
	good := writeFile(t, "hush")
	for name, c := range map[string]struct {
		env, file, want string
	}{
		"a file that does not exist":  {"", filepath.Join(t.TempDir(), "none"), "no such file"},
		"a directory":                 {"", t.TempDir(), "is a directory"},
		"an empty file":               {"", writeFile(t, "\n"), "is empty"},
		"several lines":               {"", writeFile(t, "hush\nhush\n"), "more than one line"},
		"a file that is far too long": {"", writeFile(t, strings.Repeat("hush", 64<<10)), "more than 65536 bytes"},
		"the secret beside its file": {"hush", good,
			"-vault.key and -vault.key-file (or LINKSTREAM_VAULT_KEY and LINKSTREAM_VAULT_KEY_FILE)"},
		"a content that is not valid either": {"", writeFile(t, "invalid\n"), "-vault.key: does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("LINKSTREAM_VAULT_KEY", c.env)
			t.Setenv("LINKSTREAM_VAULT_KEY_FILE", c.file)
			_, err := parseVault("-log.level=shout")
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "-log.level") {
				t.Errorf("error %v, want %q and -log.level", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}
