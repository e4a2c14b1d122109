package service

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"linkstream/schema"
)

const (
	fileSuffix     = "-file"
	maxSecretBytes = 64 << 10
)

// secretFile is a flag that names the file of a secret.
type secretFile struct {
	secret string // the name of the secret's flag
	path   string
}

// addSecretFiles defines, for each flag of a schema.Secret, the flag of a file that holds the secret.
func addSecretFiles(fs *flag.FlagSet) (files []*secretFile) {
	fs.VisitAll(func(f *flag.Flag) {
		if _, secret := f.Value.(*schema.Secret); secret {
			files = append(files, &secretFile{secret: f.Name})
		}
	})
	for _, f := range files {
		fs.StringVar(&f.path, f.flag(), "", "`file` that holds -"+f.secret+"; a line break at its end is left out")
	}
	return files
}

func (f *secretFile) flag() string { return f.secret + fileSuffix }

// load sets the secret to the file's content, if a file is named. inArgs has the flags that are in the arguments: as
// for all settings, these take precedence over the environment.
func (f *secretFile) load(fs *flag.FlagSet, inArgs map[string]bool) error {
	if f.path == "" {
		return nil
	}
	isSet := false
	fs.Visit(func(set *flag.Flag) { isSet = isSet || set.Name == f.secret })
	if isSet && inArgs[f.secret] != inArgs[f.flag()] {
		if inArgs[f.secret] {
			return nil
		}
		isSet = false
	}
	if isSet {
		return fmt.Errorf("-%s and -%s (or %s and %s): both are set", f.secret, f.flag(), variable(f.secret),
			variable(f.flag()))
	}
	secret, err := readSecret(f.path)
	if err != nil {
		return fmt.Errorf("-%s (or %s): %w", f.flag(), variable(f.flag()), err)
	}
	return fs.Set(f.secret, secret)
}

// readSecret returns the content of a file without a line break at its end. Errors do not hold the content.
func readSecret(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxSecretBytes+1))
	if err != nil {
		return "", err
	}
	if len(content) > maxSecretBytes {
		return "", fmt.Errorf("%q has more than %d bytes", path, maxSecretBytes)
	}
	secret := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	switch {
	case secret == "":
		return "", fmt.Errorf("%q is empty", path)
	case strings.ContainsAny(secret, "\x00\r\n"):
		return "", errors.New("the file has more than one line")
	}
	return secret, nil
}

// variable returns the environment variable of a flag.
func variable(name string) string {
	return "LINKSTREAM_" + strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToUpper(name))
}
