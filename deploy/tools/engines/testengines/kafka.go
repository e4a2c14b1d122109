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
// topics automatically.
func StartKafka(ctx context.Context, dir string, log *slog.Logger) (*Engine, error) {
	programs, err := kafkaOfMachine(ctx, log)
	if err != nil {
		return nil, fmt.Errorf("no kafka, and %s is not set: %w", KafkaEnv, err)
	}
	dir, release, err := lockFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("start kafka: %w", err)
	}
	ports, err := claimPorts(3)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start kafka: %w", err), release())
	}
	e := &Engine{Name: "kafka", Addr: hostPort(ports[0]), Version: programs.version, Source: programs.libs}
	if e.Secure, err = newSecure(dir, ports[2]); err != nil {
		return nil, errors.Join(fmt.Errorf("start kafka: %w", err), release())
	}
	p := programs.server(dir, kafkaNode{1, e.Addr, []string{hostPort(ports[1])}, e.Secure})
	p.log, p.ping = log, func(ctx context.Context) error { return pingKafka(ctx, e.Addr) }
	return e.started(ctx, p, release, log)
}

// pingKafka returns nil if a broker at one of the addresses lists the brokers of the cluster.
func pingKafka(ctx context.Context, addrs string) error { return pingBrokers(ctx, addrs, 1) }

// pingBrokers is pingKafka that asks for at least so many brokers.
func pingBrokers(ctx context.Context, addrs string, least int) error {
	var errs []error
	for addr := range strings.SplitSeq(addrs, ",") {
		conn, err := kafka.DialContext(ctx, "tcp", addr)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		brokers, err := conn.Brokers()
		if err := errors.Join(err, conn.Close()); err == nil && len(brokers) >= least {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s lists %d brokers: %w", addr, len(brokers), err))
	}
	return errors.Join(errs...)
}

// kafkaPrograms are Java and Kafka's jars.
type kafkaPrograms struct {
	java    string
	libs    string // the folder of the jars
	version string
}

// kafkaNode is a broker and controller of a cluster.
type kafkaNode struct {
	number      int    // from 1
	addr        string // host:port, for clients
	controllers []string
	secure      *Secure
}

// kafkaProperties configures a node. Internal topics have a replica on each node, and a consumer group does not wait
// for further members. A killed broker may register again when its session has expired, so the session is shorter than
// the default of nine seconds. Users of the secure listener but the first one may do what ACLs allow.
const kafkaProperties = `process.roles=broker,controller
node.id=%[1]d
controller.quorum.voters=%[2]s
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://%[3]s,CONTROLLER://%[4]s,SASL_SSL://%[5]s
advertised.listeners=PLAINTEXT://%[3]s,SASL_SSL://%[5]s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:%[6]s
log.dirs=%[7]s
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=1000
offsets.topic.num.partitions=4
offsets.topic.replication.factor=%[8]d
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=%[8]d
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.replication.factor=%[8]d
share.coordinator.state.topic.min.isr=1
`

func (n kafkaNode) properties(data string) string {
	voters := make([]string, len(n.controllers))
	for i, addr := range n.controllers {
		voters[i] = fmt.Sprintf("%d@%s", i+1, addr)
	}
	return fmt.Sprintf(kafkaProperties, n.number, strings.Join(voters, ","), n.addr, n.controllers[n.number-1],
		n.secure.Addr, n.secure.Username, data, len(voters)) + n.secure.properties()
}

// server returns the process of a node whose data, log and configuration are in dir.
func (kp *kafkaPrograms) server(dir string, node kafkaNode) *process {
	properties := filepath.Join(dir, "server.properties")
	data := filepath.Join(dir, kafkaData)
	p := &process{output: filepath.Join(dir, "kafka.log"), quit: syscall.SIGTERM}
	p.prepare = func(ctx context.Context) error {
		if err := os.WriteFile(properties, []byte(node.properties(data)), 0o600); err != nil {
			return err
		}
		if exists(filepath.Join(data, "meta.properties")) { // the format tool writes it last
			return nil
		}
		cluster := base64.RawURLEncoding.EncodeToString([]byte("linkstream-local")) // Kafka requires 16 bytes
		args := append([]string{"format", "-t", cluster, "-c", properties}, node.secure.formatArgs()...)
		_, err := output(kp.cmd(ctx, "kafka.tools.StorageTool", args...))
		return err
	}
	p.command = func() (*exec.Cmd, error) { return kp.cmd(context.Background(), "kafka.Kafka", properties), nil }
	return p
}

// kafkaData is the folder of a node's data in the node's own.
const kafkaData = "data"

// cmd returns a command that starts with half of the CPU time of Java's defaults, which are made for programs that run
// longer.
func (kp *kafkaPrograms) cmd(ctx context.Context, class string, args ...string) *exec.Cmd {
	java := []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true",
		"-Dlog4j2.level=WARN", "-cp", kp.libs + "/*", class}
	return exec.CommandContext(ctx, kp.java, append(java, args...)...)
}
