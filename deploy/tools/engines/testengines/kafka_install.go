package testengines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	kafkaVersion = "4.3.1" // the version to install
	kafkaOldest  = 4       // the oldest major version of the machine's own Kafka that is used
	javaOldest   = 17      // required by Kafka 4
)

// kafkaPOM makes Maven download Kafka and a logger.
const kafkaPOM = `<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>linkstream</groupId><artifactId>kafka</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>` + kafkaVersion + `</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.25.4</version>
    </dependency>
  </dependencies>
</project>
`

// kafkaOfMachine finds Java, and finds or installs Kafka.
func kafkaOfMachine(ctx context.Context, log *slog.Logger) (*kafkaPrograms, error) {
	java, err := findJava(ctx)
	if err != nil {
		return nil, err
	}
	libs, err := findKafka()
	if err != nil {
		dir, failed := install(ctx, "kafka-"+kafkaVersion, log, fillKafka)
		if failed != nil {
			return nil, errors.Join(err, failed)
		}
		libs = filepath.Join(dir, "libs")
	}
	version, err := kafkaVersionOf(libs)
	return &kafkaPrograms{java: java, libs: libs, version: version}, err
}

// findKafka returns the folder of the jars of a Kafka whose programs are on the path.
func findKafka() (libs string, err error) {
	path, err := exec.LookPath("kafka-server-start.sh")
	if err != nil {
		return "", fmt.Errorf("find kafka on this machine: %w", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", fmt.Errorf("find kafka on this machine: %w", err)
	}
	libs = filepath.Join(filepath.Dir(path), "../libs")
	version, err := kafkaVersionOf(libs)
	if err != nil {
		return "", err
	}
	if major(version) < kafkaOldest {
		return "", fmt.Errorf("kafka in %q is %s, older than %d", libs, version, kafkaOldest)
	}
	return libs, nil
}

// kafkaVersionOf returns the version of the Kafka whose jars are in libs.
func kafkaVersionOf(libs string) (string, error) {
	const prefix = "kafka-clients-"
	jars, err := filepath.Glob(filepath.Join(libs, prefix+"*.jar"))
	if err != nil {
		return "", err
	}
	if len(jars) == 0 {
		return "", fmt.Errorf("%q holds no %s*.jar", libs, prefix)
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), prefix), ".jar"), nil
}

func findJava(ctx context.Context) (string, error) {
	path, err := exec.LookPath("java")
	if err != nil {
		return "", fmt.Errorf("find java: %w", err)
	}
	says, err := output(exec.CommandContext(ctx, path, "-version"))
	if err != nil {
		return "", err
	}
	_, version, _ := strings.Cut(says, ` version "`)
	if major(version) < javaOldest {
		return "", fmt.Errorf("%q is %s, older than %d", path, last(says, 100), javaOldest)
	}
	return path, nil
}

// fillKafka downloads Kafka's jars and their dependencies to dir/libs by Maven.
func fillKafka(ctx context.Context, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(kafkaPOM), 0o600); err != nil {
		return err
	}
	if err := copyDependencies(ctx, dir); err != nil {
		return err
	}
	_, err := kafkaVersionOf(filepath.Join(dir, "libs"))
	return err
}

// major returns the number at the start of version, 0 if there is none.
func major(version string) int {
	n, _ := strconv.Atoi(version[:len(version)-len(strings.TrimLeft(version, "0123456789"))])
	return n
}
