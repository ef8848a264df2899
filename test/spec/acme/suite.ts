// The test files of this folder in one process.
import { runTestsIn } from '../../support/run-tests.ts';

runTestsIn(import.meta.dirname);
