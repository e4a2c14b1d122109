package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"linkstream/api/client"
)

const (
	// maxMessage bounds a message of an assistant in bytes. The service refuses large ones.
	maxMessage = 1 << 20
	// maxMessages bounds the messages that are under way.
	maxMessages = 8
	// rpcFailed is an error code of JSON-RPC 2.0 that its users choose.
	rpcFailed = -32000
)

func (c *command) mcpCommand() *cobra.Command {
	const short = "Offer the tools of the service to an assistant"
	return &cobra.Command{Use: "mcp", Short: short, Args: cobra.NoArgs, RunE: c.mcp,
		ValidArgsFunction: cobra.NoFileCompletions,
		Long: short + `: the Model Context Protocol on standard input and output.

Assistants on this machine start it. It has the tools of the address /api/v1/mcp of the service: shorten, find, show,
edit, delete, report, compare and qr, as far as the API token allows.`}
}

// mcp passes messages between an assistant, on standard input and output, and the service. The service has no sessions,
// so each message is a request of its own.
func (c *command) mcp(cmd *cobra.Command, _ []string) error {
	api, err := c.connect()
	if err != nil {
		return err
	}
	b, ctx := bridge{command: c, api: api}, cmd.Context()
	lines, places := bufio.NewScanner(c.in), make(chan struct{}, maxMessages)
	lines.Buffer(nil, maxMessage)
	ended := make(chan struct{})
	go func() { // which may outlive the command: a read of standard input does not end with ctx
		defer close(ended)
		var underWay sync.WaitGroup
		defer underWay.Wait()
		for lines.Scan() {
			var m message
			line := bytes.Clone(lines.Bytes())
			if json.Unmarshal(line, &m) == nil && (m.ID == nil || m.Method == "") {
				continue // a notification or an answer, which need a session
			}
			places <- struct{}{}
			underWay.Go(func() {
				defer func() { <-places }()
				b.pass(ctx, m, line)
			})
		}
	}()
	select {
	case <-ctx.Done():
		return nil
	case <-ended:
		return lines.Err()
	}
}

// message is the part of a message that the header of its request repeats.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name string `json:"name"` // of a tool
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// bridge passes messages to a service.
type bridge struct {
	*command
	api     *client.Client
	version atomic.Pointer[string] // of the protocol, since the answer to initialize
	writing sync.Mutex
}

// pass sends a message to the service and prints the answer.
func (b *bridge) pass(ctx context.Context, m message, line []byte) {
	repeat := func(_ context.Context, req *http.Request) error {
		version := m.Params.Meta.Version
		if known := b.version.Load(); version == "" && known != nil {
			version = *known
		}
		for name, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": m.Method,
			"Mcp-Name": m.Params.Name} {
			if value != "" {
				req.Header.Set(name, value)
			}
		}
		return nil
	}
	answer, err := readMessage(b.api.CallToolWithBody(ctx, jsonType, bytes.NewReader(line), repeat))
	if err != nil {
		answer, _ = json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID,
			"error": map[string]any{"code": rpcFailed, "message": err.Error()}})
	}
	var made struct {
		Result struct{ ProtocolVersion string }
	}
	if json.Unmarshal(answer, &made) == nil && made.Result.ProtocolVersion != "" {
		b.version.Store(&made.Result.ProtocolVersion)
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	if err := b.printJSON(answer); err != nil {
		fmt.Fprintf(b.err, "linkstream: %s\n", safe(err.Error()))
	}
}

// readMessage returns the message in an answer of any status, else the error that the answer says.
func readMessage(resp *http.Response, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var m struct{ JSONRPC string }
	if json.Unmarshal(body, &m) == nil && m.JSONRPC != "" {
		return body, nil
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if _, err = client.Read[json.RawMessage](resp, nil); err == nil {
		err = errors.New("the answer is not one of the API")
	}
	return nil, err
}
