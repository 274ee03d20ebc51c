//go:build interop

package database

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// A server of a test runs in a folder of its own, on a free port of the loopback, as its
// own user where the test is run by root, and ends with the test.

// serverDir makes the folder of a server, for the user who runs it.
func serverDir(t *testing.T, owner string) (dir string, as *syscall.SysProcAttr) {
	t.Helper()
	dir, err := os.MkdirTemp("", "crewhost-database-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	as = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		return dir, as
	}
	u, err := user.Lookup(owner)
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	chown(t, dir, as)
	return dir, as
}

func chown(t *testing.T, path string, as *syscall.SysProcAttr) {
	t.Helper()
	if as.Credential != nil {
		if err := os.Chown(path, int(as.Credential.Uid), int(as.Credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}

func give(t *testing.T, dir, name, content string, as *syscall.SysProcAttr) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	chown(t, path, as)
	return path
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func runProgram(t *testing.T, as *syscall.SysProcAttr, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.SysProcAttr, cmd.Env = dir, as, []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + dir}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// startServer starts a program that serves until the test ends, and waits until ready is.
func startServer(t *testing.T, as *syscall.SysProcAttr, dir string, ready func(context.Context) error, name string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "log-of-the-test"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = dir, as, log, log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + dir}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT) // at once, with its children
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		_ = log.Close()
	})
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	late := time.After(60 * time.Second)
	for {
		if err = ready(t.Context()); err == nil {
			return
		}
		select {
		case <-again.C:
		case <-ended:
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("%s ended: %s", name, text)
		case <-late:
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("%s is not ready: %v\n%s", name, err, text)
		}
	}
}

// certificate makes one for localhost, which signs itself.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

// postgresServer is a server of PostgreSQL with the database shop and two roles: owner,
// which may do everything, and reader.
type postgresServer struct {
	port     int
	cert     string // file
	super    string // connection string of the superuser
	dir      string
	password string
}

func startPostgres(t *testing.T) postgresServer {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		t.Fatal("PostgreSQL is not installed")
	}
	bin := filepath.Dir(found[len(found)-1])
	dir, as := serverDir(t, "postgres")
	s := postgresServer{port: freePort(t), dir: dir, password: "s3cret-Pässword"}
	cert, key := certificate(t)
	s.cert = give(t, dir, "server.crt", cert, as)
	give(t, dir, "server.key", key, as)
	runProgram(t, as, dir, filepath.Join(bin, "initdb"), "-D", dir+"/data", "-U", "super", "-A", "scram-sha-256", "--pwfile", give(t, dir, "password", s.password, as), "--no-sync", "-E", "UTF8", "--locale=C")
	s.super = fmt.Sprintf("host=localhost port=%d user=super password=%s dbname=postgres sslmode=verify-full sslrootcert=%s", s.port, s.password, s.cert)
	startServer(t, as, dir, func(ctx context.Context) error {
		cfg, err := postgresSource(s.super)
		if err != nil {
			return err
		}
		conn := &postgresSession{config: cfg}
		defer conn.close()
		return conn.connect(ctx)
	}, filepath.Join(bin, "postgres"), "-D", dir+"/data", "-p", strconv.Itoa(s.port), "-h", "127.0.0.1", "-k", dir, "-F",
		"-c", "ssl=on", "-c", "ssl_cert_file="+dir+"/server.crt", "-c", "ssl_key_file="+dir+"/server.key", "-c", "shared_buffers=16MB", "-c", "max_connections=30")
	return s
}

// mysqlServer is a server of MariaDB, with a user root.
type mysqlServer struct {
	port int
	dir  string
	root string // connection string
}

func startMySQL(t *testing.T) mysqlServer {
	t.Helper()
	program, err := exec.LookPath("mariadbd")
	if err != nil {
		if program = "/usr/sbin/mariadbd"; !exists(program) {
			t.Fatal("MariaDB is not installed")
		}
	}
	dir, as := serverDir(t, "mysql")
	s := mysqlServer{port: freePort(t), dir: dir}
	runProgram(t, as, dir, "mariadb-install-db", "--no-defaults", "--datadir="+dir+"/data", "--auth-root-authentication-method=normal", "--skip-test-db")
	s.root = fmt.Sprintf("mysql://root@127.0.0.1:%d/mysql", s.port)
	startServer(t, as, dir, func(ctx context.Context) error {
		cfg, err := mysqlSource(s.root)
		if err != nil {
			return err
		}
		conn := &mysqlSession{config: cfg}
		defer conn.close()
		return conn.connect(ctx)
	}, program, "--no-defaults", "--datadir="+dir+"/data", "--port="+strconv.Itoa(s.port), "--bind-address=127.0.0.1", "--socket="+dir+"/s",
		"--pid-file="+dir+"/pid", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=16M", "--skip-log-bin", "--max-allowed-packet=256M", "--local-infile=1")
	return s
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
