// Metrics and log lines of issuances and of checks of waiting certificates. An issuance that a request waited for is told
// by the line of that request.
import type { IssuanceOrigin } from '../adapters/metrics/metrics.ts';
import type { AuditAction } from '../domain/access/ports.ts';
import type { Clock } from '../domain/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { IssuanceTools } from '../usecases/issuance/tools.ts';
import type { OnChecked } from '../usecases/validation/prove-domains.ts';
import type { App } from './app.ts';

const ORIGINS: Partial<Record<AuditAction, IssuanceOrigin>> = {
  'order:placed': 'order',
  'order:reissued': 'reissue',
  'certificate:issued': 'validation',
};

export function issuanceObservers(
  log: Log,
  metrics: App['metrics'],
  now: Clock,
): Pick<IssuanceTools, 'onIssued' | 'onLinted'> & { readonly onChecked: OnChecked } {
  return {
    onIssued({ id, accountId, orderId, names, pendingSince, preparation }, action) {
      const origin = ORIGINS[action];
      if (origin) metrics.issued(origin);
      if (origin !== 'validation') return;
      log({
        ...{ event: 'issuance', account_id: accountId, order_id: orderId, certificate_id: id },
        ...{ serial_number: preparation.serial, names: names.length, waited_ms: now() - (pendingSince ?? now()) },
      });
    },

    onLinted({ id, accountId, orderId, preparation }, verdict) {
      metrics.linted(verdict.kind);
      if (verdict.kind === 'passed') return;
      const text =
        verdict.kind === 'failed'
          ? verdict.why
          : verdict.findings.map(({ linter, code }) => `${linter} ${code}`).join(', ');
      log({
        ...{ event: 'lint', account_id: accountId, order_id: orderId, certificate_id: id },
        ...{ serial_number: preparation.serial, outcome: verdict.kind, text },
      });
    },

    onChecked({ accountId, orderId, certificateId, tries }, { method, results, outcome, ms }) {
      const checks = [...results.control.values(), ...results.caa.values()];
      const problems = checks.flatMap((one) => (one.isOk ? [] : [one.problem]));
      for (const one of results.control.values()) metrics.checked(method ?? 'none', one.isOk ? 'passed' : one.problem);
      for (const one of results.caa.values()) metrics.checked('caa', one.isOk ? 'passed' : one.problem);
      log({
        ...{ event: 'check', account_id: accountId, order_id: orderId, certificate_id: certificateId },
        ...{ method, names: results.names.length, passed: checks.length - problems.length },
        ...{ problems: [...new Set(problems)].join(' '), tries, outcome, ms },
      });
    },
  };
}
