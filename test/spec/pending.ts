// Contract lines that no test proves yet, keyed by the capability that will. The list only shrinks; it is empty when the last one is built.
// biome-ignore format: ids fill the lines, one per line would hide how much is left.
export const PENDING = {
  'callback-test': [
    'permission 3', 'permission 4', 'permission 6', 'permission 7', 'errors request_too_fast', 'errors invalid_parameters', 'errors invalid_callback_url',
    'errors callback_url_not_https', 'errors callback_not_configured', 'errors callback_send_error',
    'errors callback_response_not_200', 'errors callback_private_domain', 'errors permission_denied', 'callback-settings url',
    'callback-settings access_key', 'callback-settings disabled', 'callback-settings enabled_actions', 'callback-settings 1',
    'callback-settings 2', 'callback-settings 3', 'callback-settings 4', 'callback-settings 5', 'callback-test.request 1',
    'callback-test.request 2', 'callback-test.field url', 'callback-test.field access_key', 'callback-test 1', 'callback-test 2',
    'callback-test 3', 'callback-test 4', 'callback-test 5', 'callback-test 6', 'callback-test 7', 'callback-test 8',
    'callback-test 9', 'callback-test 10', 'callback-test 11', 'callback-test 12', 'callback-test 13', 'callback-test 14',
    'callback-test 15', 'callback-test 16', 'callback-test 17', 'callback-test 18', 'callback-test.answer 1',
    'callback-test.answer 2', 'callback-test.answer 3', 'callback-test.answer 4', 'callback-test.answer 5',
    'callback-test.payload action_type', 'callback-test.payload action_id', 'callback-test.payload order_id',
    'callback-test.payload order_status', 'callback-test.payload cert_id', 'callback-test.payload message',
    'callback-test.payload placeholders', 'callback-test.payload locale', 'callback-url 1', 'callback-url 2', 'address 1',
    'address 2', 'address 3', 'address 4', 'address 5', 'address 6', 'address 7', 'address 8', 'egress 1', 'egress 2', 'egress 3',
    'egress 4', 'egress 5', 'limit url', 'limit access_key', 'limit scheme', 'limit rate', 'limit schema', 'event 9', 'event 10',
    'event 11',
  ],
  'cloud-keys-and-dual-certificates': [
    'cloud-key 1', 'cloud-key 2', 'cloud-key 3', 'cloud-key 4', 'cloud-key 5', 'cloud-key 6', 'cloud-key 7', 'dual 1', 'dual 2',
    'dual 3', 'dual 4', 'dual 5', 'dual 6',
  ],
  'domain-validation': [
    'errors product_not_found', 'errors duplicate_alternative_order_id', 'order 11', 'order 12', 'order 13', 'order 14',
    'reissue 37', 'dcv 4', 'dcv 5', 'dcv 6', 'dcv 7', 'dcv 8', 'dcv 9', 'dcv 10', 'dcv 11', 'dcv 12', 'dcv 13', 'dcv 14',
    'dcv 15', 'persist 7', 'persist 8', 'persist 9', 'persist 10', 'persist 11', 'persist 12', 'persist 13', 'persist 14',
    'persist 15', 'persist 16', 'persist 17',
  ],
  'callback-delivery': [
    'event 1', 'event 2', 'event 3', 'event 4', 'event 5', 'event 6', 'event 8', 'delivery 1', 'delivery 2', 'delivery 3',
    'delivery 4', 'delivery 5', 'delivery 6', 'delivery 7', 'delivery 8', 'delivery 9', 'delivery 10', 'delivery 11',
  ],
  revocation: [
    'version 2', 'event 7', 'revocation 1', 'revocation 2', 'revocation 3', 'revocation 4', 'revocation 5', 'revocation 6',
    'revocation 7', 'revocation 8', 'revocation 9', 'revocation 10', 'revocation 11',
  ],
} as const satisfies Record<string, readonly string[]>;
