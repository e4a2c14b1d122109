package proc_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"linkstream/bench/proc"
	"linkstream/schema/testkit"
)

func TestGroup(t *testing.T) {
	group, err := proc.NewGroup()
	testkit.Must(t, err)
	child, err := group.Start(proc.AnyCPU, "bare server/2", nil, "sh", "-c", "echo ready; exec sleep 60")
	testkit.Must(t, err)
	firstLine(t, child)
	if _, err := os.Stat(group.Path("bare-server-2.log")); err != nil {
		t.Error(err)
	}

	var order []string
	group.OnClose(func() error { order = append(order, "first"); return nil })
	group.OnClose(func() error { order = append(order, "second"); return errors.New("disk full") })
	if err := group.Close(); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("error %v", err)
	}
	testkit.Equal(t, "functions called", order, []string{"second", "first"})
	if _, err := child.Usage(); err == nil {
		t.Error("the child still runs")
	}
	if _, err := os.Stat(group.Path()); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
}

func TestSum(t *testing.T) {
	both := proc.Sum("both", proc.This("one"), proc.This("other"))
	one, err := proc.This("one").Usage()
	testkit.Must(t, err)
	sum, err := both.Usage()
	testkit.Must(t, err)
	if sum.RSS < one.RSS || sum.CPU < one.CPU {
		t.Errorf("sum %+v of two processes like %+v", sum, one)
	}
	failing := proc.Process{Name: "gone", Usage: func() (proc.Usage, error) {
		return proc.Usage{},
			errors.New("no such process")
	}}
	if _, err := proc.Sum("both", proc.This("one"), failing).Usage(); err == nil {
		t.Error("no error for a process that is gone")
	}
}
