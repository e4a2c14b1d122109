package postgres_test

import (
	"strings"
	"testing"

	"linkstream/schema/linkstore/postgres"
)

func TestConfig(t *testing.T) {
	cfg := postgres.DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	cfg.DSN = "postgres://user:secret@host:notaport/db"
	err := cfg.Validate()
	if err == nil || !strings.Contains(err.Error(), "-postgres.dsn") {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("%q shows the password", err)
	}
}
