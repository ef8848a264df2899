// The console for the command line and the sandbox: its operators, and the address it is opened at.
import type { ConsoleCommands } from '../cli/command.ts';
import { type Config, urlHost } from '../config/config.ts';
import type { App } from './app.ts';
import { sandboxOf } from './sandbox-network.ts';

export const consoleCommands = ({ operators, store }: App, config: Config): ConsoleCommands => ({
  operators,
  async consoleUrl() {
    const { tls, host, port, publicUrl } = config;
    const listening = `${tls ? 'https' : 'http'}://${urlHost(host)}:${port}`;
    const url = (await sandboxOf(store, config))?.base_url ?? publicUrl ?? listening;
    return `${url}/console/`;
  },
});

const SANDBOX_OPERATOR = 'sandbox';

/** A sandbox has an operator from its first start on. */
export async function seedOperator({ operators }: Pick<App, 'operators'>): Promise<void> {
  if ((await operators.list()).length === 0) await operators.create(SANDBOX_OPERATOR, 'act');
}

/** A link that signs the operator of the sandbox in; undefined if that one was disabled. */
export async function sandboxLink({ operators }: Pick<App, 'operators'>, url: string): Promise<string | undefined> {
  const operator = (await operators.list()).find(({ disabledAt, name }) => name === SANDBOX_OPERATOR && !disabledAt);
  if (!operator) return undefined;
  const { token } = await operators.makeLink(operator.name);
  return `${url}/console/#login=${token.reveal()}`;
}
