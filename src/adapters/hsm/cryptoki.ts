// The calls of PKCS#11 (v2.40) that a signer needs, over an FFI. Only the signer process loads a module: what a module does,
// hang or crash, it does there. Every call runs on a thread of the FFI, so that the process stays able to end itself.
import { promisify } from 'node:util';

/** Return values that are named in messages, and what they mean for the session; any other one is a lost session. */
const RETURN_NAMES: Readonly<Record<number, string>> = {
  ...{ 1: 'CANCEL', 2: 'HOST_MEMORY', 3: 'SLOT_ID_INVALID', 5: 'GENERAL_ERROR', 6: 'FUNCTION_FAILED' },
  ...{ 7: 'ARGUMENTS_BAD', 16: 'ATTRIBUTE_READ_ONLY', 18: 'ATTRIBUTE_TYPE_INVALID', 19: 'ATTRIBUTE_VALUE_INVALID' },
  ...{ 32: 'DATA_INVALID', 33: 'DATA_LEN_RANGE', 48: 'DEVICE_ERROR', 49: 'DEVICE_MEMORY', 50: 'DEVICE_REMOVED' },
  ...{ 84: 'FUNCTION_NOT_SUPPORTED', 96: 'KEY_HANDLE_INVALID', 98: 'KEY_SIZE_RANGE', 99: 'KEY_TYPE_INCONSISTENT' },
  ...{ 104: 'KEY_FUNCTION_NOT_PERMITTED', 112: 'MECHANISM_INVALID', 113: 'MECHANISM_PARAM_INVALID' },
  ...{ 130: 'OBJECT_HANDLE_INVALID', 144: 'OPERATION_ACTIVE', 145: 'OPERATION_NOT_INITIALIZED' },
  ...{ 160: 'PIN_INCORRECT', 161: 'PIN_INVALID', 162: 'PIN_LEN_RANGE', 163: 'PIN_EXPIRED', 164: 'PIN_LOCKED' },
  ...{ 176: 'SESSION_CLOSED', 177: 'SESSION_COUNT', 179: 'SESSION_HANDLE_INVALID', 181: 'SESSION_READ_ONLY' },
  ...{ 224: 'TOKEN_NOT_PRESENT', 225: 'TOKEN_NOT_RECOGNIZED', 226: 'TOKEN_WRITE_PROTECTED' },
  ...{ 256: 'USER_ALREADY_LOGGED_IN', 257: 'USER_NOT_LOGGED_IN', 258: 'USER_PIN_NOT_INITIALIZED' },
  ...{ 400: 'CRYPTOKI_NOT_INITIALIZED', 401: 'CRYPTOKI_ALREADY_INITIALIZED' },
};
const ALREADY_LOGGED_IN = 0x100;
const ALREADY_INITIALIZED = 0x191;

/** A call that did not return CKR_OK. */
export class CryptokiError extends Error {
  readonly call: string;
  /** Such as CKR_DEVICE_REMOVED. */
  readonly value: string;

  constructor(call: string, value: number) {
    const name = `CKR_${RETURN_NAMES[value] ?? `0x${value.toString(16)}`}`;
    super(`${call} returned ${name}`);
    this.call = call;
    this.value = name;
  }
}

export const ATTRIBUTE = {
  ...{ class: 0x00, token: 0x01, private: 0x02, label: 0x03, keyType: 0x100, id: 0x102, sensitive: 0x103 },
  ...{ sign: 0x108, verify: 0x10a, modulus: 0x120, modulusBits: 0x121, publicExponent: 0x122, extractable: 0x162 },
  ...{ neverExtractable: 0x164, ecParams: 0x180, ecPoint: 0x181 },
} as const;
export const CLASS = { public: 2, private: 3 } as const;
export const MECHANISM = { rsaKeyPair: 0x0, rsa: 0x1, ecKeyPair: 0x1040, ecdsa: 0x1041 } as const;

export interface Attribute {
  readonly type: number;
  /** Numbers and booleans are encoded as CK_ULONG and CK_BBOOL. */
  readonly value: number | boolean | Uint8Array;
}

export interface TokenInfo {
  readonly slot: number;
  readonly label: string;
  readonly serial: string;
  /** A wrong PIN would lock the token. */
  readonly isAtFinalTry: boolean;
  readonly isLocked: boolean;
}

/** Handles are opaque numbers. All functions throw CryptokiError. */
export interface Cryptoki {
  tokens(): Promise<TokenInfo[]>;
  openSession(slot: number, isWritable: boolean): Promise<number>;
  login(session: number, pin: string): Promise<void>;
  find(session: number, template: readonly Attribute[]): Promise<number[]>;
  /** Undefined for those that the object has not, or does not reveal. */
  read(session: number, object: number, type: number): Promise<Buffer | undefined>;
  generate(
    session: number,
    mechanism: number,
    templates: { readonly public: readonly Attribute[]; readonly private: readonly Attribute[] },
  ): Promise<{ publicKey: number; privateKey: number }>;
  sign(session: number, mechanism: number, key: number, data: Uint8Array): Promise<Buffer>;
}

/** Positions in CK_FUNCTION_LIST, after the version. */
const POSITION = {
  ...{ C_Initialize: 0, C_GetSlotList: 4, C_GetTokenInfo: 6, C_OpenSession: 12, C_Login: 18, C_GetAttributeValue: 24 },
  ...{ C_FindObjectsInit: 26, C_FindObjects: 27, C_FindObjectsFinal: 28, C_SignInit: 42, C_Sign: 43 },
  C_GenerateKeyPair: 59,
} as const;
type Name = keyof typeof POSITION;
const LIST_LENGTH = 68;
/** The structure begins with a version of two bytes. */
const LIST_OFFSET = 8;

const PARAMETERS: Readonly<Record<Name, string>> = {
  C_Initialize: 'void *args',
  C_GetSlotList: 'uint8_t present, _Out_ ulong *slots, _Inout_ ulong *count',
  C_GetTokenInfo: 'ulong slot, void *info',
  C_OpenSession: 'ulong slot, ulong flags, void *application, void *notify, _Out_ ulong *session',
  C_Login: 'ulong session, ulong user, void *pin, ulong length',
  C_GetAttributeValue: 'ulong session, ulong object, _Inout_ CK_ATTRIBUTE *template, ulong count',
  C_FindObjectsInit: 'ulong session, CK_ATTRIBUTE *template, ulong count',
  C_FindObjects: 'ulong session, void *objects, ulong max, _Out_ ulong *count',
  C_FindObjectsFinal: 'ulong session',
  C_SignInit: 'ulong session, CK_MECHANISM *mechanism, ulong key',
  C_Sign: 'ulong session, void *data, ulong length, void *signature, _Inout_ ulong *signatureLength',
  C_GenerateKeyPair:
    'ulong session, CK_MECHANISM *mechanism, CK_ATTRIBUTE *public, ulong publicCount, CK_ATTRIBUTE *private, ulong privateCount, _Out_ ulong *publicKey, _Out_ ulong *privateKey',
};

const OS_LOCKING = 2;
const USER = 1;
const SERIAL_SESSION = 4;
const READ_WRITE = 2;
const FINAL_TRY = 0x2_0000;
const LOCKED = 0x4_0000;
const MAX_SLOTS = 64;
const MAX_FOUND = 16;
const MAX_ATTRIBUTE_BYTES = 4_096;
const MAX_SIGNATURE_BYTES = 1_024;
/** CK_TOKEN_INFO: label, manufacturer, model and serial number are texts padded with blanks; then CK_FLAGS. */
const TOKEN_INFO = { bytes: 256, label: [0, 32], serial: [80, 96], flags: 96 } as const;

/** Loads and initializes a module. Throws if the FFI is not installed or the module cannot be loaded. */
export async function loadCryptoki(modulePath: string): Promise<Cryptoki> {
  const { default: koffi } = await import('koffi');
  const library = koffi.load(modulePath);
  koffi.struct('CK_ATTRIBUTE', { type: 'ulong', pValue: 'void *', ulValueLen: 'ulong' });
  koffi.struct('CK_MECHANISM', { mechanism: 'ulong', pParameter: 'void *', ulParameterLen: 'ulong' });
  const found: (bigint | null)[] = [null];
  const returned = Number(library.func('ulong C_GetFunctionList(_Out_ void **list)')(found));
  if (returned !== 0 || found[0] === null) throw new CryptokiError('C_GetFunctionList', returned);
  const pointers = koffi.decode(found[0], LIST_OFFSET, koffi.array('void *', LIST_LENGTH)) as bigint[];

  /** Resolves with the return value. */
  const callOf = (name: Name) => {
    const type = koffi.proto(`ulong ${name}(${PARAMETERS[name]})`);
    const call = promisify(koffi.decode(pointers[POSITION[name]], type).async);
    return async (...values: unknown[]): Promise<number> => Number(await call(...values));
  };
  const calls = Object.fromEntries(
    Object.keys(POSITION).map((name) => [name, callOf(name as Name)] as const),
  ) as Record<Name, ReturnType<typeof callOf>>;
  async function invoke(name: Name, ...values: unknown[]): Promise<void> {
    const value = await calls[name](...values);
    if (value !== 0) throw new CryptokiError(name, value);
  }
  const bufferOf = (bytes: Uint8Array) => (bytes.length === 0 ? null : Buffer.from(bytes));
  const templateOf = (attributes: readonly Attribute[]) =>
    attributes.map(({ type, value }) => {
      const bytes = encoded(value);
      return { type, pValue: bufferOf(bytes), ulValueLen: bytes.length };
    });
  const mechanismOf = (mechanism: number) => ({ mechanism, pParameter: null, ulParameterLen: 0 });

  const locking = Buffer.alloc(48);
  locking.writeBigUInt64LE(BigInt(OS_LOCKING), 32);
  const initialized = await calls.C_Initialize(locking);
  if (initialized !== 0 && initialized !== ALREADY_INITIALIZED) throw new CryptokiError('C_Initialize', initialized);

  return {
    async tokens() {
      const count = [MAX_SLOTS];
      const slots = new Array<number>(MAX_SLOTS).fill(0);
      await invoke('C_GetSlotList', 1, slots, count);
      const infos: TokenInfo[] = [];
      for (const slot of slots.slice(0, Number(count[0])).map(Number)) {
        const info = Buffer.alloc(TOKEN_INFO.bytes);
        // A slot whose token has just gone has none.
        if ((await calls.C_GetTokenInfo(slot, info)) !== 0) continue;
        const text = ([from, to]: readonly [number, number]) => info.toString('utf8', from, to).trimEnd();
        const flags = Number(info.readBigUInt64LE(TOKEN_INFO.flags));
        infos.push({
          ...{ slot, label: text(TOKEN_INFO.label), serial: text(TOKEN_INFO.serial).replace(/\0+$/, '') },
          ...{ isAtFinalTry: (flags & FINAL_TRY) !== 0, isLocked: (flags & LOCKED) !== 0 },
        });
      }
      return infos;
    },

    async openSession(slot, isWritable) {
      const session = [0];
      await invoke('C_OpenSession', slot, SERIAL_SESSION | (isWritable ? READ_WRITE : 0), null, null, session);
      return Number(session[0]);
    },

    async login(session, pin) {
      const bytes = Buffer.from(pin, 'utf8');
      try {
        const value = await calls.C_Login(session, USER, bytes, bytes.length);
        if (value !== 0 && value !== ALREADY_LOGGED_IN) throw new CryptokiError('C_Login', value);
      } finally {
        bytes.fill(0);
      }
    },

    async find(session, template) {
      await invoke('C_FindObjectsInit', session, templateOf(template), template.length);
      const objects = Buffer.alloc(8 * MAX_FOUND);
      const count = [0];
      await invoke('C_FindObjects', session, objects, MAX_FOUND, count);
      await invoke('C_FindObjectsFinal', session);
      return Array.from({ length: Number(count[0]) }, (_, index) => Number(objects.readBigUInt64LE(8 * index)));
    },

    async read(session, object, type) {
      const value = Buffer.alloc(MAX_ATTRIBUTE_BYTES);
      const template = [{ type, pValue: value, ulValueLen: value.length }];
      if ((await calls.C_GetAttributeValue(session, object, template, 1)) !== 0) return undefined;
      return value.subarray(0, Number(template[0]?.ulValueLen ?? 0));
    },

    async generate(session, mechanism, templates) {
      const publicKey = [0];
      const privateKey = [0];
      const parts = [templates.public, templates.private].flatMap((one) => [templateOf(one), one.length]);
      await invoke('C_GenerateKeyPair', session, mechanismOf(mechanism), ...parts, publicKey, privateKey);
      return { publicKey: Number(publicKey[0]), privateKey: Number(privateKey[0]) };
    },

    async sign(session, mechanism, key, data) {
      const signature = Buffer.alloc(MAX_SIGNATURE_BYTES);
      const length = [signature.length];
      await invoke('C_SignInit', session, mechanismOf(mechanism), key);
      await invoke('C_Sign', session, Buffer.from(data), data.length, signature, length);
      return signature.subarray(0, Number(length[0]));
    },
  };
}

function encoded(value: Attribute['value']): Uint8Array {
  if (typeof value === 'boolean') return Uint8Array.of(value ? 1 : 0);
  if (typeof value !== 'number') return value;
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
