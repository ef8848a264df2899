// The table of commands: what is typed after `reseal`, and what it runs.
import { accountCreate, accountList, accountQuota, accountResume, accountShow, accountSuspend } from './account.ts';
import { acmeAccountDisable, acmeAccountList, acmeKeyCreate, acmeKeyDisable, acmeKeyList } from './acme.ts';
import { addressSet, addressShow } from './address.ts';
import { backup, backupVerify, crlImport, restore } from './backup.ts';
import { blocklistImport, caImport, caList } from './ca.ts';
import { callbackDelete, callbackRotate, callbackSet, callbackShow, callbackTest } from './callback.ts';
import { callbackDeliveries, callbackReplay, callbackResend, callbackResume } from './callback-deliveries.ts';
import { callbackVerify } from './callback-verify.ts';
import {
  certCancelRevocation,
  certInterrupted,
  certReschedule,
  certRevoke,
  certRevokeKey,
  certStatus,
  crlShow,
} from './cert.ts';
import { cloudKeyDestroy, cloudKeyList } from './cloud-key.ts';
import type { Command } from './command.ts';
import { consoleEnd, consoleLogin, consoleSessions, operatorCreate, operatorDisable, operatorList } from './console.ts';
import { caCeremonies, caCrossSign, caCsr, caInstall, caRevoke, caRotate, crlInstall } from './custody.ts';
import { keyCreate, keyDisable, keyList, keyRotate } from './key.ts';
import { lintCheck, lintRefusals } from './lint.ts';
import { orderCancel, orderList, orderPlace, orderShow, orderValidate } from './order.ts';
import { productList, productSchema, productShow } from './product.ts';
import { rootCrlRequest, rootExport, rootSign, rootSignCrl } from './root.ts';
import {
  sandboxDnsClear,
  sandboxDnsList,
  sandboxDnsSet,
  sandboxHttpClear,
  sandboxHttpList,
  sandboxHttpSet,
} from './sandbox-world.ts';
import { sealRotate, sealStatus } from './seal.ts';
import { doctor, sandbox, sandboxCallbacks, sandboxReset, serve } from './service.ts';
import { storeCopy } from './store.ts';
import { audit, find } from './support.ts';

export const COMMANDS: Readonly<Record<string, Command>> = {
  sandbox,
  'sandbox reset': sandboxReset,
  'sandbox callbacks': sandboxCallbacks,
  'sandbox dns set': sandboxDnsSet,
  'sandbox dns clear': sandboxDnsClear,
  'sandbox dns list': sandboxDnsList,
  'sandbox http set': sandboxHttpSet,
  'sandbox http clear': sandboxHttpClear,
  'sandbox http list': sandboxHttpList,
  serve,
  doctor,
  'address show': addressShow,
  'address set': addressSet,
  'account create': accountCreate,
  'account list': accountList,
  'account show': accountShow,
  'account quota': accountQuota,
  'account suspend': accountSuspend,
  'account resume': accountResume,
  'key create': keyCreate,
  'key list': keyList,
  'key disable': keyDisable,
  'key rotate': keyRotate,
  'operator create': operatorCreate,
  'operator list': operatorList,
  'operator disable': operatorDisable,
  'console login': consoleLogin,
  'console sessions': consoleSessions,
  'console end': consoleEnd,
  'acme key create': acmeKeyCreate,
  'acme key list': acmeKeyList,
  'acme key disable': acmeKeyDisable,
  'acme account list': acmeAccountList,
  'acme account disable': acmeAccountDisable,
  'product list': productList,
  'product show': productShow,
  'product schema': productSchema,
  'order place': orderPlace,
  'order list': orderList,
  'order show': orderShow,
  'order validate': orderValidate,
  'order cancel': orderCancel,
  'cert revoke': certRevoke,
  'cert reschedule': certReschedule,
  'cert cancel-revocation': certCancelRevocation,
  'cert status': certStatus,
  'cert revoke-key': certRevokeKey,
  'cert interrupted': certInterrupted,
  'lint refusals': lintRefusals,
  'lint check': lintCheck,
  'crl show': crlShow,
  'crl import': crlImport,
  'crl install': crlInstall,
  'callback show': callbackShow,
  'callback set': callbackSet,
  'callback delete': callbackDelete,
  'callback test': callbackTest,
  'callback rotate-secret': callbackRotate,
  'callback verify': callbackVerify,
  'callback deliveries': callbackDeliveries,
  'callback resend': callbackResend,
  'callback resume': callbackResume,
  'callback replay': callbackReplay,
  'cloud-key list': cloudKeyList,
  'cloud-key destroy': cloudKeyDestroy,
  'ca list': caList,
  'ca import': caImport,
  'ca csr': caCsr,
  'ca install': caInstall,
  'ca rotate': caRotate,
  'ca revoke': caRevoke,
  'ca cross-sign': caCrossSign,
  'ca ceremonies': caCeremonies,
  'ca root export': rootExport,
  'ca root sign': rootSign,
  'ca root crl-request': rootCrlRequest,
  'ca root sign-crl': rootSignCrl,
  'blocklist import': blocklistImport,
  backup,
  'backup verify': backupVerify,
  restore,
  'seal status': sealStatus,
  'seal rotate': sealRotate,
  'store copy': storeCopy,
  audit,
  find,
};
