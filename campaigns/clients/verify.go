// Verifies a chain with Go's crypto/x509: verify LEAF ISSUING ROOT USAGE [NAME], with the extended key usage as dotted OID.
package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

var usages = map[string]x509.ExtKeyUsage{
	"1.3.6.1.5.5.7.3.1": x509.ExtKeyUsageServerAuth,
	"1.3.6.1.5.5.7.3.2": x509.ExtKeyUsageClientAuth,
	"1.3.6.1.5.5.7.3.3": x509.ExtKeyUsageCodeSigning,
}

func certificate(file string) *x509.Certificate {
	text, err := os.ReadFile(file)
	check(err)
	block, _ := pem.Decode(text)
	read, err := x509.ParseCertificate(block.Bytes)
	check(err)
	return read
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Usages that Go has no name for are compared here, in the leaf and in the authority above it.
func hasUsage(one *x509.Certificate, usage string) bool {
	for _, id := range one.UnknownExtKeyUsage {
		if id.String() == usage {
			return true
		}
	}
	return false
}

func main() {
	leaf, issuing, root := certificate(os.Args[1]), certificate(os.Args[2]), certificate(os.Args[3])
	options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool()}
	options.Roots.AddCert(root)
	options.Intermediates.AddCert(issuing)
	if usage, isKnown := usages[os.Args[4]]; isKnown {
		options.KeyUsages = []x509.ExtKeyUsage{usage}
	} else if hasUsage(leaf, os.Args[4]) && hasUsage(issuing, os.Args[4]) {
		options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
	} else {
		check(fmt.Errorf("the usage %s is missing", os.Args[4]))
	}
	if len(os.Args) > 5 {
		options.DNSName = os.Args[5]
	}
	_, err := leaf.Verify(options)
	check(err)
}
