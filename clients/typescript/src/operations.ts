// Made by npm run record-types from the OpenAPI document: how each operation is called, and the codes of its errors.
export const OPERATIONS = {
  /**
   * Show the account
   *
   * Changes nothing: also a way to find out whether a key works, and of which kind it is.
   */
  getAccount: { method: 'GET', path: '/openapi/v3/account' },
  /**
   * Change the account
   *
   * What is left out stays as it is.
   */
  updateAccount: { method: 'PUT', path: '/openapi/v3/account', takesBody: true },
  /**
   * List what was done in the account, the oldest first
   *
   * What the operator did is listed too, without the person and the details.
   */
  listAudit: { method: 'GET', path: '/openapi/v3/account/audit', entries: 'audit' },
  /**
   * Reissue the certificate of an order
   *
   * The certificate is issued before the answer if every name is proven already; otherwise it is pending, and the earlier one stays valid. A dry run says what would happen, and which consents are missing.
   */
  reissueCertificate: { method: 'POST', path: '/openapi/v3/orders/{id}/reissue', takesBody: true, takesIdempotencyKey: true },
  /**
   * Test the callback settings with a real, simulated callback
   *
   * Without a body the saved settings are tested. A temporary url or access_key is completed from the saved ones: a temporary url alone is sent the saved access key. Nothing is saved. After a failure, `details` has the same object.
   */
  testCallback: { method: 'PUT', path: '/openapi/v3/account/callback/test', takesBody: true },
  /**
   * Show the callback settings
   *
   * Neither the access key nor the signing secret is shown.
   */
  getCallbackSettings: { method: 'GET', path: '/openapi/v3/account/callback' },
  /**
   * Save the callback settings
   *
   * Every callback carries the access key in X-CC-Callback-Auth: a receiver that logs its headers logs the key. Verify webhook-signature with the signing secret, which is never sent.
   */
  saveCallbackSettings: { method: 'PUT', path: '/openapi/v3/account/callback', takesBody: true },
  /**
   * Delete the callback settings
   *
   * Events are suppressed until there are settings again.
   */
  deleteCallbackSettings: { method: 'DELETE', path: '/openapi/v3/account/callback' },
  /**
   * Make a new signing secret
   *
   * It is shown this once. For a while callbacks carry two signatures: of the new one, and of the old.
   */
  rotateCallbackSecret: { method: 'POST', path: '/openapi/v3/account/callback/rotate-secret' },
  /**
   * List the callbacks, the newest first, with every attempt
   *
   * With a filter that little passes, a page may hold less than its limit and still have a next_after: go on from there.
   */
  listDeliveries: { method: 'GET', path: '/openapi/v3/account/callback/deliveries', entries: 'deliveries' },
  /**
   * Send a callback again
   *
   * Also one that was received before, or suppressed.
   */
  resendDelivery: { method: 'POST', path: '/openapi/v3/account/callback/deliveries/{id}/resend' },
  /**
   * Send a range of callbacks again, the oldest first and one after the other
   *
   * At most 1000 at once; next_after says where to go on. Actions that are not enabled are left out.
   */
  resendDeliveries: { method: 'POST', path: '/openapi/v3/account/callback/deliveries/resend', takesBody: true },
  /**
   * Place an order
   *
   * The certificate is issued before the answer if every name is proven already; otherwise the order shows what to publish.
   */
  placeOrder: { method: 'POST', path: '/openapi/v3/orders/{id}', takesBody: true, takesIdempotencyKey: true },
  /**
   * Show an order
   *
   * With its current certificate, what is to be published for each name, and scheduled revocations.
   */
  getOrder: { method: 'GET', path: '/openapi/v3/orders/{id}' },
  /**
   * Show an order by your own name for it
   *
   * For a client whose order was placed, and whose answer was lost.
   */
  getOrderByAlternativeId: { method: 'GET', path: '/openapi/v3/orders/alternate/{alternative_order_id}' },
  /**
   * Cancel an order that waits, or a reissue that is pending
   *
   * Canceling a pending reissue leaves the order with its earlier certificate.
   */
  cancelOrder: { method: 'PUT', path: '/openapi/v3/orders/{id}/cancel' },
  /**
   * Change how the names of a waiting order are proven
   *
   * The answer is the order, with what is to be published now.
   */
  changeDcvMethod: { method: 'PUT', path: '/openapi/v3/orders/{id}/dcv-method', takesBody: true },
  /**
   * Look at the records of a waiting order now
   *
   * The answer is the order after the look; it is `issued` if nothing was missing.
   */
  validateDomains: { method: 'PUT', path: '/openapi/v3/orders/{id}/dcv-completed' },
  /**
   * Say what DNS and web servers answer now; changes nothing
   *
   * For people who wonder what the service sees. Limited like `dcv-completed`.
   */
  checkDomains: { method: 'GET', path: '/openapi/v3/orders/{id}/dcv-check' },
  /**
   * List the orders
   *
   * In the order in which they were placed; by expiry, the first to end comes first. With a filter that little passes, a page may hold less than its limit and still have a next_after: go on from there, with the same filters. A parameter that is not listed here is refused. With `Accept: text/csv` the page is CSV, and the next one is in the `Link` header.
   */
  listOrders: { method: 'GET', path: '/openapi/v3/orders', entries: 'orders' },
  /**
   * List the certificates
   *
   * The first to end comes first; by name or product, order by order. With a filter that little passes, a page may hold less than its limit and still have a next_after: go on from there, with the same filters. A parameter that is not listed here is refused. With `Accept: text/csv` the page is CSV, and the next one is in the `Link` header.
   */
  listCertificates: { method: 'GET', path: '/openapi/v3/certs', entries: 'certificates' },
  /**
   * List the products
   *
   * All that can be ordered, the built-in ones first, and what each allows.
   */
  listProducts: { method: 'GET', path: '/openapi/v3/products' },
  /**
   * Show a certificate
   *
   * With its chain, its place in the history of the order, and its revocation.
   */
  getCertificate: { method: 'GET', path: '/openapi/v3/certs/{id}' },
  /**
   * List the cloud-held keys
   *
   * Destroyed ones too, without a way to use them.
   */
  listCloudKeys: { method: 'GET', path: '/openapi/v3/cloud-keys', entries: 'cloud_keys' },
  /**
   * Give a cloud-held key another access code
   *
   * For the access code it has. Wrong ones lock the key, longer each time.
   */
  changeCloudKeyPin: { method: 'PUT', path: '/openapi/v3/cloud-keys/{id}/pin', takesBody: true },
  /**
   * Destroy a cloud-held key for good
   *
   * The access code is in the body or in the header X-CC-Sign-Key-Pin, in UTF-8, and never in the URL.
   */
  destroyCloudKey: { method: 'DELETE', path: '/openapi/v3/cloud-keys/{id}', takesBody: true },
  /**
   * Revoke a certificate now
   *
   * CRL and OCSP show it at once. A revocation that is scheduled happens now instead; one that has happened is answered as it is, `key_compromise` replacing another reason.
   */
  revokeCertificate: { method: 'POST', path: '/openapi/v3/certs/{id}/revoke', takesBody: true },
  /**
   * Bring a scheduled revocation forward, or put it off
   *
   * A reissue may schedule the revocation of earlier certificates, where the product has a period of grace.
   */
  rescheduleRevocation: { method: 'PUT', path: '/openapi/v3/certs/{id}/revocation', takesBody: true },
  /**
   * Cancel a scheduled revocation
   *
   * Where the product lets revocations be put off.
   */
  cancelRevocation: { method: 'DELETE', path: '/openapi/v3/certs/{id}/revocation' },
  /**
   * Exchange key id and secret for an access token
   *
   * The token is short-lived and is sent as Bearer.
   */
  logInToSign: { method: 'POST', path: '/csc/v2/auth/login', takesBody: true },
  /**
   * Revoke an access token
   *
   * It ends at once. Only one of the same key, and only one that has not ended.
   */
  revokeSigningToken: { method: 'POST', path: '/csc/v2/auth/revoke', takesBody: true },
  /**
   * Say what the signing service can do
   *
   * For everyone: no authentication.
   */
  getSigningInfo: { method: 'POST', path: '/csc/v2/info', takesBody: true },
  /**
   * List the keys that can sign
   *
   * The newest first page; `nextPageToken` leads to the next.
   */
  listSigningCredentials: { method: 'POST', path: '/csc/v2/credentials/list', takesBody: true },
  /**
   * Describe a key that can sign
   *
   * Its algorithms, its certificate, and how its use is authorized.
   */
  getSigningCredential: { method: 'POST', path: '/csc/v2/credentials/info', takesBody: true },
  /**
   * Authorize signatures of certain digests with the access code
   *
   * Wrong codes lock the key, longer each time.
   */
  authorizeSigning: { method: 'POST', path: '/csc/v2/credentials/authorize', takesBody: true },
  /**
   * Sign digests that were authorized
   *
   * An authorization serves once.
   */
  signHashes: { method: 'POST', path: '/csc/v2/signatures/signHash', takesBody: true },
} as const;

export const ERROR_CODES = [
  'account_suspended',
  'api_key_disabled',
  'callback_not_configured',
  'callback_paused',
  'callback_private_domain',
  'callback_response_not_200',
  'callback_send_error',
  'callback_url_not_https',
  'cancel_not_allowed',
  'cert_not_found',
  'cloud_key_not_found',
  'delivery_not_found',
  'duplicate_alternative_order_id',
  'idempotency_key_reused',
  'invalid_callback_url',
  'invalid_csr',
  'invalid_dcv_method',
  'invalid_domain',
  'invalid_parameters',
  'invalid_sans',
  'lint_refused',
  'order_not_found',
  'order_state_conflict',
  'permission_denied',
  'product_not_found',
  'quota_exceeded',
  'reissue_in_progress',
  'remove_domain_not_confirmed',
  'request_too_fast',
  'revocation_state_conflict',
  'revoke_last_cert_not_confirmed',
  'service_busy',
  'service_internal_error',
  'sign_key_locked',
  'sign_key_pin_wrong',
  'unauthenticated_request',
] as const;
