// A customer's journey through the client that openapi-generator makes of the document: place, prove, certificate, reissue
// with consent, callback test, deliveries, revoke. Started by the campaign java-client, which publishes DNS records.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.*;
import org.openapitools.client.model.*;

public class Journey {
    static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in));

    static void require(boolean isTrue, String what) {
        if (!isTrue) throw new AssertionError(what);
        System.out.println("ok " + what);
    }

    public static void main(String[] args) throws Exception {
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("JOURNEY_URL"));
        client.setRequestInterceptor(request -> request
            .header("X-CC-Key-ID", System.getenv("JOURNEY_KEY_ID"))
            .header("X-CC-Auth-Key", System.getenv("JOURNEY_AUTH_KEY")));
        OrdersApi orders = new OrdersApi(client);
        CertificatesApi certificates = new CertificatesApi(client);
        CallbacksApi callbacks = new CallbacksApi(client);

        var settings = callbacks.saveCallbackSettings(new CallbackSettingsRequest()
            .url(java.net.URI.create(System.getenv("JOURNEY_RECEIVER"))).accessKey("java-client"));
        require(settings.getData().getCallback().getSigningSecret().startsWith("whsec_"), "signing secret");

        String csr = System.getenv("JOURNEY_CSR");
        var placed = orders.placeOrder("ssl-dv", new PlaceOrderRequest()
            .dcvMethod(PlaceOrderRequest.DcvMethodEnum.DNS)
            .certificate(new FirstCertificateRequest().csr(csr).commonName("www.example.com")
                .dnsNames(List.of("www.example.com", "example.com")).signHash(SignHash.SHA256)), "placed-once").getData();
        Order waiting = orders.getOrder(placed.getId()).getData();
        require(waiting.getStatus() == OrderStatus.DOMAIN_VERIFING, "waits");
        for (DcvRecord record : waiting.getDcvVal()) {
            System.out.println("TXT " + record.getAuthPath() + " " + record.getAuthVal());
            IN.readLine();
        }
        Order proven = new ValidationApi(client).validateDomains(placed.getId()).getData();
        require(proven.getStatus() == OrderStatus.ISSUED, "issued");
        Certificate first = certificates.getCertificate(placed.getCertificate().getId()).getData().getCertificate();
        require(first.getStatus() == CertificateStatus.ISSUED && first.getVersion() == 1, "certificate");

        ReissueRequest fewer = new ReissueRequest().certificate(new CertificateRequest().csr(csr)
            .commonName("www.example.com").dnsNames(List.of()).signHash(SignHash.SHA256));
        try {
            orders.reissueCertificate(placed.getId(), fewer, null, null);
            throw new AssertionError("reissued without consent");
        } catch (ApiException refused) {
            var error = client.getObjectMapper().readValue(refused.getResponseBody(), ReissueCertificate409Response.class);
            var missing = (RemoveDomainNotConfirmedError) error.getActualInstance();
            require(missing.getDetails().getCertificates().equals(List.of(first.getId())), "details of the refusal");
        }
        var plan = orders.reissueCertificate(placed.getId(), fewer, true, null).getData().getPlan();
        require(plan.getMissingConsents().equals(List.of(MissingConsent.REMOVE_DOMAIN_NOT_CONFIRMED)), "plan");
        var reissued = orders.reissueCertificate(placed.getId(),
            fewer.iKnowRemoveDomainWillRevokeBeforeCert(true), false, "java").getData().getCertificate();
        require(!reissued.getId().equals(first.getId()), "reissued");

        // An absent body would be sent as null, which is no object.
        CallbackReport report = callbacks.testCallback(new CallbackTestRequest()).getData().getCallback();
        require(report.getHttpStatus() == 200 && report.getStage() == CallbackStage.RESPONSE, "callback test");
        List<Delivery> delivered = List.of();
        for (int tries = 0; tries < 300 && delivered.size() < 3; tries += 1, Thread.sleep(100)) {
            delivered = callbacks.listDeliveries(placed.getId(), null, null, null, DeliveryState.DELIVERED, null, 10)
                .getData().getDeliveries();
        }
        require(delivered.size() == 3 && delivered.get(0).getAttempts().size() > 0, "deliveries " + delivered.size());

        Revocation revocation = certificates.revokeCertificate(reissued.getId(), new RevocationRequest()
            .reason(RevocationRequest.ReasonEnum.SUPERSEDED)).getData().getCertificate().getRevocation();
        require(revocation.getCrlNumber() > Integer.MAX_VALUE, "crl_number " + revocation.getCrlNumber());
        System.out.println("done");
    }
}
