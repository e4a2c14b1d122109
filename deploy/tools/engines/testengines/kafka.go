package testengines

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/segmentio/kafka-go"
)

// Kafka returns the brokers that KafkaEnv names. If it names none, it calls StartKafka.
func Kafka(ctx context.Context, dir string, log *slog.Logger) (*Engine, error) {
	if addrs := os.Getenv(KafkaEnv); addrs != "" {
		e := &Engine{Name: "kafka", Addr: addrs, Source: KafkaEnv}
		return e.remote(ctx, func(ctx context.Context) error { return pingKafka(ctx, addrs) }, log)
	}
	return StartKafka(ctx, dir, log)
}

// StartKafka starts an Apache Kafka 4 in KRaft mode, one process that is broker and controller. It does not create
// topics automatically. If Kafka is not available, an embedded broker replaces it, unless RequireEnv is 1.
func StartKafka(ctx context.Context, dir string, log *slog.Logger) (*Engine, error) {
	e := &Engine{Name: "kafka"}
	programs, missing := kafkaOfMachine(ctx, log)
	if missing != nil {
		missing = fmt.Errorf("no kafka, and %s is not set: %w", KafkaEnv, missing)
		if os.Getenv(RequireEnv) == "1" {
			return nil, missing
		}
		log.Warn("an embedded broker replaces Kafka", "error", missing)
	}
	dir, release, err := lockFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("start kafka: %w", err)
	}
	ports, err := claimPorts(3)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start kafka: %w", err), release())
	}
	e.Addr = hostPort(ports[0])
	if missing != nil {
		e.Version, e.Source = "kfake", "embedded"
		return e.started(ctx, &embeddedBroker{dir: filepath.Join(dir, "kfake"), port: ports[0], log: log}, release, log)
	}
	e.Version, e.Source = programs.version, programs.libs
	if e.Secure, err = newSecure(dir, ports[2]); err != nil {
		return nil, errors.Join(fmt.Errorf("start kafka: %w", err), release())
	}
	p := programs.server(dir, e.Addr, hostPort(ports[1]), e.Secure)
	p.log, p.ping = log, func(ctx context.Context) error { return pingKafka(ctx, e.Addr) }
	return e.started(ctx, p, release, log)
}

// pingKafka returns nil if a broker at one of the addresses lists the brokers of the cluster.
func pingKafka(ctx context.Context, addrs string) error {
	var errs []error
	for addr := range strings.SplitSeq(addrs, ",") {
		conn, err := kafka.DialContext(ctx, "tcp", addr)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		brokers, err := conn.Brokers()
		if err := errors.Join(err, conn.Close()); err == nil && len(brokers) > 0 {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s lists no broker: %w", addr, err))
	}
	return errors.Join(errs...)
}

// kafkaPrograms are Java and Kafka's jars.
type kafkaPrograms struct {
	java    string
	libs    string // the folder of the jars
	version string
}

// kafkaProperties configures a cluster of one node. Internal topics have one replica, and a consumer group does not
// wait for further members. A killed broker may register again when its session has expired, so the session is shorter
// than the default of nine seconds.
const kafkaProperties = `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[2]s
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s,SASL_SSL://%[4]s
advertised.listeners=PLAINTEXT://%[1]s,SASL_SSL://%[4]s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL
log.dirs=%[3]s
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=1000
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
`

// server returns the process of a broker whose data, log and configuration are in dir.
func (kp *kafkaPrograms) server(dir, addr, controllerAddr string, secure *Secure) *process {
	properties := filepath.Join(dir, "server.properties")
	data := filepath.Join(dir, "data")
	p := &process{output: filepath.Join(dir, "kafka.log"), quit: syscall.SIGTERM}
	p.prepare = func(ctx context.Context) error {
		config := fmt.Sprintf(kafkaProperties, addr, controllerAddr, data, secure.Addr) + secure.properties()
		if err := os.WriteFile(properties, []byte(config), 0o600); err != nil {
			return err
		}
		if exists(filepath.Join(data, "meta.properties")) { // the format tool writes it last
			return nil
		}
		cluster := base64.RawURLEncoding.EncodeToString([]byte("linkstream-local")) // Kafka requires 16 bytes
		args := append([]string{"format", "-t", cluster, "-c", properties}, secure.formatArgs()...)
		_, err := output(kp.cmd(ctx, "kafka.tools.StorageTool", args...))
		return err
	}
	p.command = func() (*exec.Cmd, error) { return kp.cmd(context.Background(), "kafka.Kafka", properties), nil }
	return p
}

// cmd returns a command that starts with half of the CPU time of Java's defaults, which are made for programs that run longer.
func (kp *kafkaPrograms) cmd(ctx context.Context, class string, args ...string) *exec.Cmd {
	java := []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true", "-Dlog4j2.level=WARN", "-cp", kp.libs + "/*", class}
	return exec.CommandContext(ctx, kp.java, append(java, args...)...)
}
