// What the operators' routes answer, as types: erased before this reaches a browser. The only tie of the console to the service.
export type * from '../../../http/console/operator-schemas.ts';
