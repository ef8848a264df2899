// The tables of the console, a part of the schema.
import type { OperatorRole } from '../../../domain/console/session.ts';

export interface ConsoleTables {
  console_operator: { name: string; role: OperatorRole; created_at: number; disabled_at: number | null };
  console_link: { token_hash: string; operator_name: string; created_at: number; expires_at: number };
  console_session: {
    id: string;
    token_hash: string;
    key_id: string | null;
    operator_name: string | null;
    created_at: number;
    last_seen_at: number;
    expires_at: number;
    network: string;
  };
}
