// Preloaded into a process of a campaign (NODE_OPTIONS=--import): shifts its wall clock, as a machine's that is wrong.
const offset = Number(process.env.CAMPAIGN_CLOCK_MS);
const RealDate = Date;

class ShiftedDate extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(ShiftedDate.now());
    else super(...given);
  }

  static now() {
    return RealDate.now() + offset;
  }
}

globalThis.Date = ShiftedDate;
